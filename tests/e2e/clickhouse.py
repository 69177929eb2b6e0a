# SPDX-License-Identifier: MIT
"""ClickHouse for tests: the oldest and the newest version that users have, on loopback, with users and passwords.

Old: Debian's clickhouse-server. New: the library in the npm package chdb, which contains the whole server.
`scripts/readers chdb` installs it in PROBING_CHDB; the default is ~/.cache/probing/chdb.
"""

import base64
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

CHDB = pathlib.Path(os.environ.get("PROBING_CHDB", "~/.cache/probing/chdb")).expanduser()
LIBRARY = CHDB / "node_modules/@chdb/lib-linux-x64-gnu/libchdb.so"
PASSWORD = "correct horse"

CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>{http}</http_port>
  <tcp_port>{tcp}</tcp_port>
  {https}
  <path>{folder}/data/</path>
  <tmp_path>{folder}/tmp/</tmp_path>
  <user_files_path>{folder}/files/</user_files_path>
  <users_config>{folder}/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>67108864</mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <max_concurrent_queries>50</max_concurrent_queries>
  <timezone>Asia/Tokyo</timezone>
  <remote_servers><probing><shard><replica>
    <host>127.0.0.1</host><port>{tcp}</port><user>admin</user><password>{password}</password>
  </replica></shard></probing></remote_servers>
</yandex>
"""

USERS = """<?xml version="1.0"?>
<yandex>
  <profiles><default>{profile}</default></profiles>
  <users>
    <default><password></password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota></default>
    <admin><password>{password}</password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota>{access}</admin>
    {others}
  </users>
  <quotas><default></default></quotas>
</yandex>
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Error(Exception):
    """The server's answer with a status other than 200."""

    def __init__(self, status, code, text):
        super().__init__(f"{status} {code}: {text[:300]}")
        self.status, self.code, self.text = status, code, text


class Server:
    """A server in a folder of its own. Data survive kill() and start()."""

    name = None

    def __init__(self, settings="", certificate=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="clickhouse-"))
        for name in ("data", "tmp", "files"):
            (self.folder / name).mkdir()
        self.http, self.tcp = free_port(), free_port()
        self.https = free_port() if certificate else None
        self.process = None
        certified = (f"<https_port>{self.https}</https_port><openSSL><server>"
                     f"<certificateFile>{certificate}</certificateFile><privateKeyFile>{certificate}</privateKeyFile>"
                     "<verificationMode>none</verificationMode></server></openSSL>") if certificate else ""
        (self.folder / "config.xml").write_text(CONFIG.format(
            http=self.http, tcp=self.tcp, https=certified, folder=self.folder, password=PASSWORD))
        self.settings, self.others = settings, ""
        self.write_users()

    def write_users(self):
        (self.folder / "users.xml").write_text(USERS.format(
            password=PASSWORD, access=self.access, profile=self.settings, others=self.others))

    def add_user(self, name, password, grants):
        """A user with these rights ('INSERT ON a.b'), after a restart: chdb has users from its configuration only."""
        queries = "".join(f"<query>GRANT {grant}</query>" for grant in grants)
        self.others += (f"<{name}><password>{password}</password><networks><ip>127.0.0.1</ip></networks>"
                        f"<profile>default</profile><quota>default</quota><grants>{queries}</grants></{name}>")
        self.write_users()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder, start_new_session=True)
        deadline = time.monotonic() + 90
        while True:
            try:
                self.query("SELECT 1")
                return self
            except (OSError, Error) as error:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise RuntimeError(f"{self.name} does not start: {error}\n"
                                       + (self.folder / "log").read_text(errors="replace")[-3000:]) from error
                time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database="probing", user="admin", port=None):
        return f"http://{user}@127.0.0.1:{port or self.http}/{database}"

    def query(self, sql, user="admin", password=PASSWORD, timeout=60, **settings):
        """The answer as a list of rows, each a list of strings."""
        settings = urllib.parse.urlencode({"wait_end_of_query": 1, **settings})
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}/?{settings}", sql.encode())
        request.add_header("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            code = error.headers.get("X-ClickHouse-Exception-Code")
            raise Error(error.code, int(code) if code else None, text) from error
        return [line.split("\t") for line in text.splitlines()]

    def post(self, path, body):
        """A request as somebody else made it."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", body)
        request.add_header("Authorization", "Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()).decode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def number(self, sql):
        return int(self.query(sql)[0][0])


class ZooKeeper:
    """Debian's ZooKeeper on loopback, which replicas of ClickHouse agree by."""

    @staticmethod
    def missing():
        for path in ("/usr/share/java/zookeeper.jar", "/usr/bin/java"):
            if not os.path.exists(path):
                return f"no {path}: scripts/packages test"
        return None

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="zookeeper-"))
        self.port = free_port()
        (self.folder / "zoo.cfg").write_text(
            f"tickTime=1000\ndataDir={self.folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n4lw.commands.whitelist=ruok\n")
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["/usr/bin/java", "-Xmx128m", "-cp", "/usr/share/java/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                 str(self.folder / "zoo.cfg")], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 90
        while not self.answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                said = (self.folder / "log").read_text(errors="replace")[-2000:]
                self.stop()
                raise RuntimeError("ZooKeeper does not start: " + said)
            time.sleep(0.05)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(b"ruok")
                return connection.recv(4) == b"imok"
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Old(Server):
    name = "ClickHouse 18.16"
    access = ""

    @staticmethod
    def missing():
        return None if shutil.which("clickhouse-server", path="/usr/sbin:/usr/bin") else \
            "clickhouse-server is not installed: scripts/packages test"

    def command(self):
        return ["/usr/sbin/clickhouse-server", f"--config-file={self.folder}/config.xml"]


class New(Server):
    name = "ClickHouse 26.7"
    access = "<access_management>1</access_management>"

    @staticmethod
    def missing():
        return None if LIBRARY.exists() else f"no {LIBRARY}: scripts/readers chdb"

    def command(self):
        if not (self.folder / "files" / "end").exists():
            os.mkfifo(self.folder / "files" / "end")
        return [sys.executable, os.path.abspath(__file__), str(LIBRARY), str(self.folder)]


def serve(library, folder):
    """Run the library as a server: clickhouse-local that listens, and a query that waits for ever."""
    # What answers over HTTP, which start() waits for, also answers other servers.
    sql = ("SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; "
           f"SELECT * FROM file('{folder}/files/end', 'LineAsString')")
    arguments = ["clickhouse", "--config-file", f"{folder}/config.xml", "--path", f"{folder}/data", "--query", sql]
    chdb = ctypes.CDLL(library)
    chdb.chdb_query_cmdline.restype = ctypes.c_void_p
    chdb.chdb_query_cmdline((len(arguments)), (ctypes.c_char_p * len(arguments))(*map(os.fsencode, arguments)))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(sys.argv[1], sys.argv[2])
