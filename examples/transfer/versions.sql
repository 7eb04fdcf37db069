-- The accounts of schema.sql, where each write makes the version of a row larger.
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, version BIGINT NOT NULL);

INSERT INTO account (id, balance, version)
  WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100)
  SELECT i, 1000, 1 FROM n;
