-- +goose Up

create table account (
    id      bigint generated always as identity,
    anchor  timestamptz not null, -- where billing periods are counted from, and nothing is before
    created timestamptz not null,
    primary key (id) include (anchor)
);

-- What the secret of all digests makes of an empty text, to notice another one.
create table key_secret (
    probe  bytea not null,
    single boolean primary key default true check (single)
);

-- Entitlements are text that nothing checks: the contract says what happens when
-- one is missing (null) or broken (CFG-1). Several plans can have one name: a
-- user may be on a variant of a plan, whose owner that user is.
create table plan (
    id                  text check (id <> ''),
    name                text not null check (name <> ''),
    owner               bigint references account,
    operations          bigint not null check (operations >= 0),
    requests_per_minute text check (octet_length(requests_per_minute) <= 256),
    burst               text check (octet_length(burst) <= 256),
    concurrency         text check (octet_length(concurrency) <= 256),
    check (owner is not null or id = name),
    primary key (id) include (name, operations, requests_per_minute, burst, concurrency)
);

-- A key is found by the handle, the first eight bytes of its digest; the digest
-- is compared outside, in constant time. The key itself is nowhere.
create table api_key (
    user_id bigint not null references account,
    number  integer not null,
    handle  bigint not null,
    digest  bytea not null check (octet_length(digest) = 32),
    prefix  text not null,
    created timestamptz not null,
    revoked timestamptz,
    primary key (user_id, number)
);

create unique index api_key_lookup on api_key (handle) include (digest, user_id, number, revoked);

-- The plan of a user is the last row that has begun. A scheduled plan is a row
-- that begins at the billing-period boundary; nothing has to run then.
create table subscription (
    user_id bigint not null references account,
    begins  timestamptz not null,
    plan_id text not null references plan,
    primary key (user_id, begins) include (plan_id)
);

-- Values are checked here as well as at the operator boundary (OVR-3). A row
-- that has ended is history: nothing checks it again, or a malformed override,
-- which only whoever puts the constraint aside can store, could not be ended.
create table rate_override (
    id           bigint generated always as identity primary key,
    user_id      bigint not null references account,
    dimension    text not null,
    value        text not null check (octet_length(value) <= 256),
    expires      timestamptz,
    set_at       timestamptz not null,
    author       text not null check (length(author) between 1 and 200),
    reason       text not null check (length(reason) between 1 and 1000),
    ended_at     timestamptz, -- null: the last of its dimension, in force unless it has expired
    ended_by     text check (length(ended_by) between 1 and 200), -- null: it had expired before
    ended_reason text check (length(ended_reason) between 1 and 1000),
    constraint override_dimension check (dimension in ('requests-per-minute', 'burst', 'concurrency')),
    constraint override_value check (ended_at is not null or case
        when value !~ '^[1-9][0-9]{0,6}$' then false
        when dimension = 'concurrency' then value::integer <= 100000
        else value::integer <= 1000000 end),
    constraint override_expiry check (expires > set_at),
    constraint override_end check ((ended_by is null) = (ended_reason is null) and (ended_at is not null or ended_by is null))
);

-- At most one per user and dimension (OVR-7).
create unique index override_lookup on rate_override (user_id, dimension)
    include (value, expires) where ended_at is null;
create index override_history on rate_override (user_id, id);

-- The operations of a billing period, which its start names. granted is null as
-- long as the plan's number holds.
create table usage (
    user_id bigint not null references account,
    period  timestamptz not null,
    granted bigint,
    used    bigint not null default 0 check (used >= 0),
    primary key (user_id, period)
);

-- An operation of a request in flight. Once it was seen to have lapsed it lapses
-- at -infinity: whatever a clock says later, others may have taken the operation.
create table reservation (
    id      text primary key check (octet_length(id) between 1 and 128),
    user_id bigint not null references account,
    period  timestamptz not null,
    reserved timestamptz not null,
    lapses   timestamptz not null,
    charged boolean not null default false
);

create index reservation_user on reservation (user_id);

-- +goose StatementBegin
-- billing_period is the month by the calendar that an instant lies in, counted
-- from the anchor; before the anchor it is the first.
create function billing_period(anchor timestamptz, instant timestamptz, out begins timestamptz, out ends timestamptz)
language sql immutable as $$
    select (a + make_interval(months => k)) at time zone 'UTC', (a + make_interval(months => k + 1)) at time zone 'UTC'
    from (select a, case when a + make_interval(months => k) > t then k - 1 else k end as k
          from (select a, t, (12 * (extract(year from t) - extract(year from a))
                              + extract(month from t) - extract(month from a))::integer as k
                from (select anchor at time zone 'UTC' as a, greatest(anchor, instant) at time zone 'UTC' as t) dates) months) begun
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- operations_left is the operations of a period that are not charged; less than
-- none if they were set to less while a request held one.
create function operations_left(account_id bigint, start timestamptz) returns bigint
language sql stable as $$
    select coalesce(u.granted, p.operations) - coalesce(u.used, 0)
    from (select s.plan_id from subscription s
          where s.user_id = account_id and s.begins <= start order by s.begins desc limit 1) s
    join plan p on p.id = s.plan_id
    left join usage u on u.user_id = account_id and u.period = start
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- operations_free is those of them that no request has reserved either.
create function operations_free(account_id bigint, start timestamptz, instant timestamptz) returns bigint
language sql stable as $$
    select operations_left(account_id, start) - count(*) from reservation r
    where r.user_id = account_id and r.period = start and not r.charged and r.lapses > instant
$$;
-- +goose StatementEnd

-- Servers that keep what they have looked up listen, whoever makes the change: the
-- payload is a user's id, or empty where every user may be concerned.
-- +goose StatementBegin
create function notify_user() returns trigger language plpgsql as $$
begin
    perform pg_notify('brimline_accounts', to_jsonb(coalesce(new, old)) ->> tg_argv[0]);
    return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function notify_all() returns trigger language plpgsql as $$
begin
    perform pg_notify('brimline_accounts', '');
    return null;
end $$;
-- +goose StatementEnd

create trigger notify after update on account for each row execute function notify_user('id');
create trigger notify after update or delete on api_key for each row execute function notify_user('user_id');
create trigger notify after insert or update or delete on subscription for each row execute function notify_user('user_id');
create trigger notify after insert or update on rate_override for each row execute function notify_user('user_id');
create trigger notify after update or delete on plan for each statement execute function notify_all();

-- The history of overrides is only ever added to; all that can happen to a row
-- is that it ends, once (OVR-7).
-- +goose StatementBegin
create function keep_history() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' and old.ended_at is null and new.ended_at is not null
       and (new.id, new.user_id, new.dimension, new.value, new.set_at, new.author, new.reason, new.expires)
           is not distinct from
           (old.id, old.user_id, old.dimension, old.value, old.set_at, old.author, old.reason, old.expires) then
        return new;
    end if;
    raise exception 'the history of overrides cannot be changed';
end $$;
-- +goose StatementEnd

create trigger keep_history before update or delete on rate_override for each row execute function keep_history();
create trigger keep_history_whole before truncate on rate_override for each statement execute function keep_history();

-- +goose Down
drop table reservation, usage, rate_override, subscription, plan, api_key, key_secret, account;
drop function billing_period, operations_left, operations_free, notify_user, notify_all, keep_history;
