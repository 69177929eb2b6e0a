-- A network interface at a moment, once a second: record --metrics. Of a running process: now. Counters are totals since the interface
-- was made. Interfaces of the recorder's network namespace, and of those of recorded processes; unused ones have no rows.
CREATE TABLE IF NOT EXISTS network_usage(
  timestamp        REAL NOT NULL,         -- [seconds since 1970] UTC
  namespace        INTEGER NOT NULL,      -- inode of the network namespace, as in /proc/PID/ns/net; a container has its own
  interface        TEXT NOT NULL,         -- "eth0", "lo"
  received_bytes   INTEGER,               -- [bytes] received
  received_packets INTEGER,               -- packets received
  receive_errors   INTEGER,               -- broken ones
  receive_drops    INTEGER,               -- ones without room
  sent_bytes       INTEGER,               -- [bytes] sent
  sent_packets     INTEGER,               -- packets sent
  send_errors      INTEGER,               -- failures to send
  send_drops       INTEGER,               -- ones that were not sent
  host             TEXT NOT NULL,         -- the machine
  PRIMARY KEY(timestamp, namespace, interface, host)
) WITHOUT ROWID;
