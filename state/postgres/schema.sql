CREATE SCHEMA IF NOT EXISTS egret;

CREATE TABLE egret.version (version int NOT NULL);
INSERT INTO egret.version VALUES (2);

CREATE TABLE egret.states (
	id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	topology text NOT NULL,
	name text NOT NULL,
	UNIQUE (topology, name)
);

-- All fences of a task change with each batch: room for that on the same page. They keep
-- their state from being deleted, which would be another one when it is opened again. Rows
-- need not: nobody writes them without the fence.
CREATE TABLE egret.fences (
	state int NOT NULL REFERENCES egret.states,
	grp smallint NOT NULL,
	epoch bigint NOT NULL DEFAULT 0,
	round bigint NOT NULL DEFAULT 0,
	life bigint NOT NULL DEFAULT 0,
	txid bigint NOT NULL DEFAULT 0,
	txid_epoch bigint NOT NULL DEFAULT 0,
	txid_round bigint NOT NULL DEFAULT 0,
	committed bigint NOT NULL DEFAULT 0,
	undo boolean NOT NULL DEFAULT false,
	PRIMARY KEY (state, grp)
) WITH (fillfactor = 40);

-- The key comes before the group, which readers do not know.
CREATE TABLE egret.rows (
	state int NOT NULL,
	grp smallint NOT NULL,
	txid bigint NOT NULL,
	key bytea NOT NULL,
	value bytea,
	prev bytea,
	PRIMARY KEY (state, key, grp)
);

-- For the undo. A batch is at its end, in one place.
CREATE INDEX rows_of_batch ON egret.rows (state, txid);

-- A batch is written only when all before it are committed.
CREATE VIEW egret.progress AS
	SELECT s.topology, max(greatest(f.committed, f.txid - 1)) AS committed
	FROM egret.states s JOIN egret.fences f ON f.state = s.id
	GROUP BY s.topology;

CREATE VIEW egret.committed AS
	SELECT topology, state, key, txid, value
	FROM (
		SELECT s.topology, s.name AS state, r.key, least(r.txid, p.committed) AS txid,
			CASE WHEN r.txid <= p.committed OR NOT f.undo THEN r.value ELSE r.prev END AS value
		FROM egret.states s
			JOIN egret.progress p ON p.topology = s.topology
			JOIN egret.rows r ON r.state = s.id
			JOIN egret.fences f ON f.state = r.state AND f.grp = r.grp
	) all_rows
	WHERE value IS NOT NULL;
