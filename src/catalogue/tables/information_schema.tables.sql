-- Every table available here.
CREATE VIEW information_schema.tables(
  table_schema,                           -- TEXT main: the recording's own; may be omitted
  table_name,                             -- TEXT its name
  table_type,                             -- TEXT BASE TABLE | VIEW | VIRTUAL TABLE
  remarks                                 -- TEXT description of a row; NULL: no description
) AS
  SELECT schema, name, CASE type WHEN 'table' THEN 'BASE TABLE' WHEN 'view' THEN 'VIEW' ELSE 'VIRTUAL TABLE' END,
         probing_table_remarks(schema, name)
  FROM (SELECT CASE WHEN schema = 'temp' AND probing_table_remarks('main', name) IS NOT NULL THEN 'main' ELSE schema END
               AS schema, name, max(type) AS type
        FROM pragma_table_list WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' AND type <> 'shadow'
        GROUP BY 1, name
        UNION ALL
        SELECT 'main', name, 'virtual' FROM pragma_module_list
        WHERE probing_table_remarks('main', name) IS NOT NULL
              AND name NOT IN (SELECT name FROM pragma_table_list WHERE schema = 'main'))
  ORDER BY schema <> 'main', schema, name;
