-- Every column of every table available here.
CREATE VIEW information_schema.columns(
  table_schema,                           -- TEXT of its table
  table_name,                             -- TEXT its table
  column_name,                            -- TEXT its name
  ordinal_position,                       -- INTEGER from 1
  data_type,                              -- TEXT INTEGER | REAL | TEXT | BLOB; empty: varies by row
  is_nullable,                            -- TEXT YES | NO
  unit,                                   -- TEXT ns, bytes, seconds since 1970 ...; NULL: none, or unknown
  remarks                                 -- TEXT description; NULL: no description
) AS
  SELECT table_schema, table_name, c.name, c.cid + 1,
         COALESCE(probing_column_type(table_schema, table_name, c.name), c.type),
         CASE WHEN c."notnull" OR c.pk > 0 THEN 'NO' ELSE 'YES' END,
         probing_column_unit(table_schema, table_name, c.name),
         probing_column_remarks(table_schema, table_name, c.name)
  FROM information_schema.tables AS t,
       pragma_table_xinfo(CASE WHEN probing_can_be_read(table_schema, table_name) THEN table_name END,
                          CASE WHEN table_schema <> 'main' THEN table_schema END) AS c
  WHERE c.hidden IN (0, 2, 3);
