#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tables as they are written down in src/catalogue/tables: as C descriptors, and as documentation.

catalogue.py c OUTPUT FILE...         descriptors and the schema of a new recording
catalogue.py markdown OUTPUT FILE...  docs/tables.md
catalogue.py check DOCUMENT FILE...   says whether that document is what the tables are now

A file is named [SCHEMA.]NAME.sql and holds one statement:

    -- What a row is, in some lines.
    CREATE TABLE name(
      column TYPE ...,     -- [unit] what it means
      PRIMARY KEY(...)
    );

CREATE VIEW names its columns in the same way, each with a comment that begins with its type.
CREATE VIRTUAL TABLE name(columns) stands in no file: a module of the program makes it.
A view with a schema stands in no file either: it is a question that is asked when it is read.
CREATE TABLE IF NOT EXISTS stands in the files only that have rows of it.
"""
import os
import re
import sys

HEAD = re.compile(r'CREATE (TABLE|VIEW|VIRTUAL TABLE) (IF NOT EXISTS )?(?:(\w+)\.)?(\w+)\($')
COLUMN = re.compile(r'  (\w+|"[^"]+") *(.*?),? *-- ?(.*)$')
CONSTRAINT = re.compile(r'  (PRIMARY KEY|UNIQUE|CHECK|FOREIGN KEY)\b')
UNIT = re.compile(r'\[([^\]]+)\] ?(.*)$')
TYPES = ('INTEGER', 'REAL', 'TEXT', 'BLOB', 'ANY')
KINDS = {'TABLE': 'CATALOGUE_TABLE', 'VIEW': 'CATALOGUE_VIEW', 'VIRTUAL TABLE': 'CATALOGUE_VIRTUAL'}
SHOWN_KINDS = {'TABLE': 'table', 'VIEW': 'view', 'VIRTUAL TABLE': 'virtual table'}


class Column:
    """A column: its name, type, unit ('' where it has none), what it means, and whether it may be NULL."""

    def __init__(self, name, definition, comment, is_view):
        self.name = name.strip('"')
        if is_view:
            kind, _, comment = comment.partition(' ')
            definition = kind
        self.type = definition.split(' ')[0]
        if self.type not in TYPES:
            raise ValueError('%s: a type is one of %s' % (name, ', '.join(TYPES)))
        self.not_null = 'NOT NULL' in definition or 'PRIMARY KEY' in definition
        unit = UNIT.match(comment)
        self.unit, self.doc = unit.groups() if unit else ('', comment)
        if not self.unit and not self.doc:
            raise ValueError('%s: nothing says what it means' % name)


class Table:
    """A table of the catalogue, out of its file."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            lines = file.read().splitlines()
        try:
            self.parse(lines)
            wanted = (self.schema + '.' if self.schema != 'main' else '') + self.name + '.sql'
            if os.path.basename(path) != wanted:
                raise ValueError('the file should be called ' + wanted)
        except ValueError as error:
            raise SystemExit('%s: %s' % (path, error))

    def parse(self, lines):
        n = 0
        while n < len(lines) and lines[n].startswith('--'):
            n += 1
        self.doc = ' '.join(line[2:].strip() for line in lines[:n])
        head = HEAD.match(lines[n]) if n < len(lines) else None
        if not head or not self.doc:
            raise ValueError('a comment that says what a row is, and then CREATE ... name(')
        self.kind, self.schema, self.name = head.group(1), head.group(3) or 'main', head.group(4)
        self.is_optional = head.group(2) is not None
        end = next((i for i in range(n, len(lines)) if lines[i].startswith(')')), None)
        if end is None:
            raise ValueError('no line that begins with )')
        self.columns = [self.column(line) for line in lines[n + 1:end] if not CONSTRAINT.match(line)]
        self.body = lines[:n], lines[n:]
        after = '\n'.join([lines[end][1:]] + lines[end + 1:])
        self.query = after.strip()[len('AS'):].strip().rstrip(';') if self.kind == 'VIEW' else ''

    def column(self, line):
        match = COLUMN.match(line)
        if not match:
            raise ValueError('a column is "  name TYPE, -- what it means", not %r' % line)
        return Column(match.group(1), match.group(2), match.group(3), self.kind == 'VIEW')

    @property
    def is_in_file(self):
        return self.schema == 'main' and self.kind != 'VIRTUAL TABLE'

    @property
    def is_in_every_file(self):
        return self.is_in_file and not self.is_optional

    @property
    def ddl(self):
        """The statement that makes it, with what a row is as its first lines: SQLite keeps those inside."""
        doc, text = self.body
        return '\n'.join([text[0]] + ['  ' + line for line in doc] + text[1:]) + '\n'


ESCAPES = {'\\': '\\\\', '"': '\\"', '\t': '\\t', '?': '\\?'}


def literal(text, indent='\t\t'):
    """Text as a C string, a line of it on each line."""
    def line(part):
        return '"' + ''.join(ESCAPES.get(chr(byte)) or (
            chr(byte) if 32 <= byte < 127 else '\\n' if byte == 10 else '\\%03o' % byte) for byte in part.encode()) + '"'
    return ('\n' + indent).join(map(line, text.splitlines(keepends=True))) or '""'


def write_c(tables, out):
    out.write('/* Made by tools/catalogue.py out of src/catalogue/tables. */\n'
              '#include "src/catalogue/catalogue.h"\n\n#include <stddef.h>\n')
    for n, table in enumerate(tables):
        out.write('\nstatic const struct catalogue_column columns_%d[] = {\n' % n)
        for column in table.columns:
            out.write('\t{ %s, %s, %s,\n\t  %s, %s },\n' % (
                literal(column.name), literal(column.type), literal(column.unit) if column.unit else 'NULL',
                literal(column.doc), 'true' if column.not_null else 'false'))
        out.write('};\nstatic const struct catalogue_table table_%d = {\n' % n)
        for name, value in (('schema', table.schema), ('name', table.name), ('doc', table.doc), ('ddl', table.ddl)):
            out.write('\t.%s = %s,\n' % (name, literal(value)))
        if table.query:
            out.write('\t.query = %s,\n' % literal(table.query))
        if table.is_optional:
            out.write('\t.is_optional = true,\n')
        out.write('\t.kind = %s,\n\t.columns = columns_%d,\n\t.n_columns = %d,\n};\n' % (
            KINDS[table.kind], n, len(table.columns)))
    out.write('\nconst struct catalogue_table *const catalogue_tables[] = {\n%s\tNULL,\n};\n' % ''.join(
        '\t&table_%d,\n' % n for n in range(len(tables))))
    head = '-- The file a recording is kept in. Any SQLite tool opens it.\n'
    out.write('\nconst char catalogue_schema_sql[] =\n\t%s;\n' % literal(
        head + ''.join(table.ddl for table in tables if table.is_in_every_file), '\t'))


def cell(text):
    return text.replace('|', '\\|')


def markdown(tables):
    """docs/tables.md"""
    parts = ['# Tables\n\nGenerated by `ninja tables-doc` from [src/catalogue/tables](../src/catalogue/tables); '
             '[extending.md](extending.md#a-table-or-a-column) shows how to add one. `information_schema.tables` and '
             '`information_schema.columns` have the same contents, and `DESCRIBE` prints them.\n']
    for schema in sorted({table.schema for table in tables}, key=lambda name: (name != 'main', name)):
        parts.append('\n## ' + ('In the recording' if schema == 'main' else 'Schema `%s`' % schema) + '\n')
        for table in (table for table in tables if table.schema == schema):
            name = table.name if schema == 'main' else schema + '.' + table.name
            parts.append('\n### `%s`\n\n%s (%s)\n\n| column | type | unit | |\n|---|---|---|---|\n' % (
                name, table.doc.rstrip('.'), SHOWN_KINDS[table.kind] + ', in files with rows' * table.is_optional if table.is_in_file else 'virtual table'))
            for column in table.columns:
                parts.append('| `%s` | %s | %s | %s |\n' % (column.name, column.type.replace('ANY', ''),
                                                           cell(column.unit), cell(column.doc)))
    return ''.join(parts)


def main():
    what, target, *files = sys.argv[1:]
    tables = [Table(path) for path in files]
    if what == 'check':
        with open(target, encoding='utf-8') as file:
            if file.read() != markdown(tables):
                raise SystemExit('%s is not what the tables are now: run ninja tables-doc' % target)
        return
    with open(target, 'w', encoding='utf-8') as out:
        if what == 'c':
            write_c(tables, out)
        else:
            out.write(markdown(tables))


if __name__ == '__main__':
    main()
