-- The API log: one row for each request in scope. It refers to no other table,
-- so that an entry outlives its user and is never refused for want of one.

-- +goose Up
create table api_log (
    request_id          text primary key,
    schema              integer not null,
    received            timestamptz not null,
    duration_us         bigint not null,
    method              text not null,
    path                text not null,
    status              integer not null,
    error_code          text,
    outcome             text not null,
    user_id             text,
    plan                text,
    charged             bigint not null,
    -- What the limiter decided and all it decided it on; null where it was not asked.
    decision_order      bigint,
    decision_instant_us bigint,
    decision_outcome    text,
    requests_per_minute bigint,
    burst               bigint,
    concurrency         bigint,
    in_flight           bigint,
    level               bigint
);

create index api_log_user on api_log (user_id, received) where user_id is not null;
create index api_log_received on api_log (received); -- for retention

-- +goose Down
drop table api_log;
