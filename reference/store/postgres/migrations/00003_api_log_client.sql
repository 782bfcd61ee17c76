-- Who asked where no user is known, and what a trusted proxy calls a request.

-- +goose Up
alter table api_log
    add column client         text, -- an address, in so far as it may be kept
    add column correlation_id text;

-- +goose Down
alter table api_log
    drop column client,
    drop column correlation_id;
