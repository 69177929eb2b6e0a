-- A file with code: an executable, a library.
CREATE TABLE module(
  module   INTEGER PRIMARY KEY,           -- its number
  path     TEXT NOT NULL,                 -- as the process saw it
  build_id TEXT                           -- hexadecimal; NULL: none or not readable
);
