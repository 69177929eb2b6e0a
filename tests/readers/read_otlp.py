# SPDX-License-Identifier: MIT
"""read_otlp.py FILE - what an OTLP profiles file holds, as JSON, read by Google's protobuf for Python.

The schema is written down here as the numbers and types of the fields of opentelemetry-proto 1.11, all of them, so that
any field of ours that has another number or type is an unknown one, and an error. All rules that the schema's
comments call MUST, and the SHOULDs on dictionaries and times, are checked.
"""
import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Field: number, type; "*" repeated. Names of messages begin with a capital letter.
SCHEMA = {
    "AnyValue": {"string_value": (1, "string"), "bool_value": (2, "bool"), "int_value": (3, "int64"), "double_value": (4, "double"),
                 "array_value": (5, "ArrayValue"), "kvlist_value": (6, "KeyValueList"), "bytes_value": (7, "bytes"),
                 "string_value_strindex": (8, "int32")},
    "ArrayValue": {"values": (1, "*AnyValue")},
    "KeyValueList": {"values": (1, "*KeyValue")},
    "KeyValue": {"key": (1, "string"), "value": (2, "AnyValue"), "key_strindex": (3, "int32")},
    "InstrumentationScope": {"name": (1, "string"), "version": (2, "string"), "attributes": (3, "*KeyValue"),
                             "dropped_attributes_count": (4, "uint32")},
    "EntityRef": {"schema_url": (1, "string"), "type": (2, "string"), "id_keys": (3, "*string"), "description_keys": (4, "*string")},
    "Resource": {"attributes": (1, "*KeyValue"), "dropped_attributes_count": (2, "uint32"), "entity_refs": (3, "*EntityRef")},
    "ProfilesDictionary": {"mapping_table": (1, "*Mapping"), "location_table": (2, "*Location"), "function_table": (3, "*Function"),
                           "link_table": (4, "*Link"), "string_table": (5, "*string"), "attribute_table": (6, "*KeyValueAndUnit"),
                           "stack_table": (7, "*Stack")},
    "ProfilesData": {"resource_profiles": (1, "*ResourceProfiles"), "dictionary": (2, "ProfilesDictionary")},
    "ResourceProfiles": {"resource": (1, "Resource"), "scope_profiles": (2, "*ScopeProfiles"), "schema_url": (3, "string")},
    "ScopeProfiles": {"scope": (1, "InstrumentationScope"), "profiles": (2, "*Profile"), "schema_url": (3, "string")},
    "Profile": {"sample_type": (1, "ValueType"), "samples": (2, "*Sample"), "time_unix_nano": (3, "fixed64"),
                "duration_nano": (4, "uint64"), "period_type": (5, "ValueType"), "period": (6, "int64"), "profile_id": (7, "bytes"),
                "dropped_attributes_count": (8, "uint32"), "original_payload_format": (9, "string"), "original_payload": (10, "bytes"),
                "attribute_indices": (11, "*int32")},
    "Link": {"trace_id": (1, "bytes"), "span_id": (2, "bytes")},
    "ValueType": {"type_strindex": (1, "int32"), "unit_strindex": (2, "int32")},
    "Sample": {"stack_index": (1, "int32"), "attribute_indices": (2, "*int32"), "link_index": (3, "int32"), "values": (4, "*int64"),
               "timestamps_unix_nano": (5, "*fixed64")},
    "Mapping": {"memory_start": (1, "uint64"), "memory_limit": (2, "uint64"), "file_offset": (3, "uint64"),
                "filename_strindex": (4, "int32"), "attribute_indices": (5, "*int32")},
    "Stack": {"location_indices": (1, "*int32")},
    "Location": {"mapping_index": (1, "int32"), "address": (2, "uint64"), "lines": (3, "*Line"), "attribute_indices": (4, "*int32")},
    "Line": {"function_index": (1, "int32"), "line": (2, "int64"), "column": (3, "int64")},
    "Function": {"name_strindex": (1, "int32"), "system_name_strindex": (2, "int32"), "filename_strindex": (3, "int32"),
                 "start_line": (4, "int64")},
    "KeyValueAndUnit": {"key_strindex": (1, "int32"), "value": (2, "AnyValue"), "unit_strindex": (3, "int32")},
}


def message_class(name):
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="otlp.proto", package="otlp", syntax="proto3")
    for message, fields in SCHEMA.items():
        to = file.message_type.add(name=message)
        if message == "AnyValue":
            to.oneof_decl.add(name="value")
        for field, (number, kind) in fields.items():
            it = to.field.add(name=field, number=number, label=3 if kind[0] == "*" else 1)
            kind = kind.lstrip("*")
            if kind in SCHEMA:
                it.type, it.type_name = field_type.TYPE_MESSAGE, ".otlp." + kind
            else:
                it.type = field_type.Type.Value("TYPE_" + kind.upper())
            if message == "AnyValue":
                it.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("otlp." + name))


def check(holds, what):
    if not holds:
        sys.exit("read_otlp: " + what)


def check_known(message):
    """protobuf keeps fields that the schema lacks; a message without them is as long as it was."""
    before = message.ByteSize()
    message.DiscardUnknownFields()
    check(message.ByteSize() == before, "a field is not in the schema")


class Reader:
    def __init__(self, data):
        self.dictionary, self.used = data.dictionary, {}
        for name in SCHEMA["ProfilesDictionary"]:
            table = getattr(self.dictionary, name)
            items = [it if isinstance(it, str) else it.SerializeToString(deterministic=True) for it in table]
            check(items, name + " is empty")
            check(items[0] in ("", b"") or name == "link_table" and items[0] == b"\x0a\x10" + bytes(16) + b"\x12\x08" + bytes(8),
                  name + " does not begin with the zero value")
            check(len(set(items)) == len(items), name + " has an item twice")
            self.used[name] = {0}

    def at(self, name, index):
        table = getattr(self.dictionary, name)
        check(0 <= index < len(table), "%s has no item %d" % (name, index))
        self.used[name].add(index)
        return table[index]

    def text(self, index):
        return self.at("string_table", index)

    def value(self, value):
        kind = value.WhichOneof("value")
        check(kind in ("string_value", "int_value", "bool_value"), "an attribute is a %s" % kind)
        return getattr(value, kind)

    def attributes(self, indices):
        found = {}
        for index in indices:
            check(index != 0, "an attribute is none")
            it = self.at("attribute_table", index)
            key = self.text(it.key_strindex)
            check(key and key not in found, "an attribute is there twice")
            found[key] = self.value(it.value)
        return found

    def place(self, index):
        check(index != 0, "a location is none")
        it = self.at("location_table", index)
        mapping = self.at("mapping_table", it.mapping_index)
        lines = []
        for line in it.lines:
            check(line.function_index != 0, "a line has no function")
            function = self.at("function_table", line.function_index)
            lines.append({"name": self.text(function.name_strindex), "symbol": self.text(function.system_name_strindex),
                          "file": self.text(function.filename_strindex), "start": function.start_line, "line": line.line})
            check(lines[-1]["name"] or lines[-1]["symbol"] or lines[-1]["file"], "a function has no name")
        check(it.mapping_index == 0 or mapping.memory_start <= it.address <= mapping.memory_limit, "an address is outside its mapping")
        return {"type": self.attributes(it.attribute_indices).get("profile.frame.type"), "address": it.address, "inlined": lines,
                "module": self.text(mapping.filename_strindex) if it.mapping_index else None,
                "buildId": self.attributes(mapping.attribute_indices).get("process.executable.build_id.gnu", "")}

    def type(self, it):
        return [self.text(it.type_strindex), self.text(it.unit_strindex)]

    def sample(self, it, profile):
        times, values = list(it.timestamps_unix_nano), list(it.values)
        check(values and (not times or len(times) == len(values)), "a sample has other numbers of times and values")
        for time in times:
            check(profile.time_unix_nano <= time < profile.time_unix_nano + profile.duration_nano, "a time is outside the profile")
        stack = self.at("stack_table", it.stack_index)
        return {"places": [self.place(index) for index in stack.location_indices], "values": values, "times": times,
                "attributes": self.attributes(it.attribute_indices)}

    def profile(self, it):
        found, seen = [self.sample(sample, it) for sample in it.samples], set()
        for sample in it.samples:
            key = sample.stack_index, frozenset(sample.attribute_indices), sample.link_index
            check(key not in seen, "two samples differ in nothing")
            seen.add(key)
        check(len({bool(sample["times"]) for sample in found}) <= 1, "some samples of a profile have times, and some have not")
        return {"type": self.type(it.sample_type), "periodType": self.type(it.period_type), "period": it.period,
                "start": it.time_unix_nano, "duration": it.duration_nano, "samples": found}

    def resource(self, it):
        keys = [pair.key for pair in it.attributes]
        check(len(keys) == len(set(keys)), "a resource has an attribute twice")
        return {pair.key: self.value(pair.value) for pair in it.attributes}


def read(path):
    with open(path, "rb") as file:
        start = file.read(2)
    with (gzip.open if start == b"\x1f\x8b" else open)(path, "rb") as file:
        data = message_class("ProfilesData").FromString(file.read())
    check_known(data)
    reader, found = Reader(data), []
    for resource in data.resource_profiles:
        for scope in resource.scope_profiles:
            found.append({"resource": reader.resource(resource.resource), "scope": [scope.scope.name, scope.scope.version],
                          "profiles": [reader.profile(profile) for profile in scope.profiles]})
    for name, used in reader.used.items():
        check(len(used) == len(getattr(data.dictionary, name)), name + " has items without use")
    return found


if __name__ == "__main__":
    json.dump(read(sys.argv[1]), sys.stdout)
