-- What the workload `sqlite` runs if the user brings no script: a store of keys with values of 100
-- bytes, and orders that come and go. Each core runs it on a database of its own.
--
-- The part before the marker fills the database, before the measured region. The part after it is
-- measured and repeated. Every execution of a statement gets a new `:random`.

CREATE TABLE item (k INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, amount INTEGER NOT NULL);
CREATE INDEX sale_item ON sale (item);

INSERT INTO item
    WITH RECURSIVE key (k) AS (VALUES (1) UNION ALL SELECT k + 1 FROM key WHERE k < :rows)
    SELECT k, randomblob(100) FROM key;

INSERT INTO sale (item, amount)
    SELECT 1 + abs(random() % :rows), abs(random() % 10) FROM item WHERE k % 10 = 0;

-- measured

-- Eight transactions of one statement. There are four inserts for one delete, so that in the long
-- run four keys of five are there and the database keeps its size.
UPDATE item SET v = randomblob(100) WHERE k = 1 + :random % :rows;
INSERT OR REPLACE INTO item VALUES (1 + :random % :rows, randomblob(100));
SELECT v FROM item WHERE k = 1 + :random % :rows;
INSERT OR REPLACE INTO item VALUES (1 + :random % :rows, randomblob(100));
UPDATE item SET v = randomblob(100) WHERE k = 1 + :random % :rows;
INSERT OR REPLACE INTO item VALUES (1 + :random % :rows, randomblob(100));
DELETE FROM item WHERE k = 1 + :random % :rows;
INSERT OR REPLACE INTO item VALUES (1 + :random % :rows, randomblob(100));

-- One transaction of ten statements: an order of two items, and the oldest orders leave.
BEGIN;
SELECT v FROM item WHERE k = 1 + :random % :rows;
UPDATE item SET v = randomblob(100) WHERE k = 1 + :random % :rows;
INSERT INTO sale (item, amount) VALUES (1 + :random % :rows, abs(random() % 10));
SELECT v FROM item WHERE k = 1 + :random % :rows;
UPDATE item SET v = randomblob(100) WHERE k = 1 + :random % :rows;
INSERT INTO sale (item, amount) VALUES (1 + :random % :rows, abs(random() % 10));
SELECT sum(amount) FROM sale WHERE item = 1 + :random % :rows;
UPDATE sale SET amount = amount + 1 WHERE id = (SELECT max(id) FROM sale);
DELETE FROM sale WHERE id = (SELECT min(id) FROM sale);
DELETE FROM sale WHERE id = (SELECT min(id) FROM sale);
COMMIT;
