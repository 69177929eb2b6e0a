#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A bill of materials, SPDX 2.3 as JSON: the libraries that a statically linked program contains, by their Debian packages.

Arguments: the program's version, then the packages. A package that is not installed is left out: it is in no program here.
Source: spdx.github.io/spdx-spec/v2.3.
"""
import datetime
import json
import os
import re
import subprocess
import sys


def query(package):
    """(version, source package), or None."""
    done = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Abbrev}\t${Version}\t${source:Package}", package], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    status, _, rest = done.stdout.partition("\t")
    return tuple(rest.split("\t")) if done.returncode == 0 and status.strip() == "ii" else None


def identity(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def describe(name, version, purl=None):
    package = {"SPDXID": identity(name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
               "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
               "copyrightText": "NOASSERTION"}
    if purl:
        package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return package


def main(version, names):
    sources = {}
    for name in names:
        found = query(name)
        if found:
            sources[found[1]] = found[0]
    made = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    own = describe("probing", version)
    own["licenseDeclared"] = "MIT"
    packages = [own] + [describe(source, sources[source], "pkg:deb/debian/%s@%s?arch=source" % (source, sources[source]))
                        for source in sorted(sources)]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": identity("probing")}]
    relations += [{"spdxElementId": identity("probing"), "relationshipType": "STATIC_LINK", "relatedSpdxElement": one["SPDXID"]}
                  for one in packages[1:]]
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "probing-" + version,
               "documentNamespace": "https://probing.example/sbom/" + version,
               "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: probing/tools/sbom.py"]},
               "packages": packages, "relationships": relations}, sys.stdout, indent=1)
    print()


main(sys.argv[1], sys.argv[2:])
