"""What hosts that meet say to the server: {} is the meeting's schema."""

from __future__ import annotations

ALIVE = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; "
    "SET synchronous_commit = off"
)
"""So the server finds within seconds that a machine is gone."""
TABLES = (
    "CREATE TABLE IF NOT EXISTS {}.ready (host text PRIMARY KEY, session int, step int, lead_us bigint)",
    "CREATE TABLE IF NOT EXISTS {}.began (step int PRIMARY KEY, starts_us bigint, hosts text[])",
)
READY = (
    "INSERT INTO {}.ready VALUES (%s, pg_backend_pid(), %s, %s) ON CONFLICT (host) DO UPDATE "
    "SET session = excluded.session, step = excluded.step, lead_us = excluded.lead_us"
)
SEEN = (
    "SELECT host, step, lead_us, EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = session "
    "AND classid::bigint = %s AND objid::bigint = %s AND granted) FROM {}.ready"
)
BEGIN = (
    "INSERT INTO {}.began VALUES (%s, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + %s, %s) "
    "ON CONFLICT DO NOTHING"
)
BEGAN = "SELECT starts_us, hosts FROM {}.began WHERE step = %s"
