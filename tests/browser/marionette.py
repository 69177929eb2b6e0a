# SPDX-License-Identifier: MIT
"""Firefox by its Marionette protocol: the same operations on a page as devtools.py has them for Chromium.

https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html: messages are JSON behind their length and a colon,
[0, number, command, parameters] and [1, number, error, result]. The commands are those of WebDriver.
"""
import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import browser  # noqa: E402
from browser import SECONDS, Failure  # noqa: E402
from devtools import CONTROL  # noqa: E402

KEYS = {'Enter': '\ue007', 'Escape': '\ue00c', 'Tab': '\ue004', 'Home': '\ue011', 'End': '\ue010', 'ArrowLeft': '\ue012', 'ArrowUp': '\ue013',
        'ArrowRight': '\ue014', 'ArrowDown': '\ue015', CONTROL: '\ue009'}
SCREEN = (2700, 1400)
PREFERENCES = {'marionette.port': 0, 'browser.shell.checkDefaultBrowser': False, 'browser.aboutwelcome.enabled': False,
               'datareporting.policy.dataSubmissionEnabled': False, 'datareporting.healthreport.uploadEnabled': False,
               'toolkit.telemetry.reportingpolicy.firstRun': False, 'network.captive-portal-service.enabled': False,
               'network.connectivity-service.enabled': False, 'app.normandy.enabled': False, 'ui.prefersReducedMotion': 1,
               'layout.css.prefers-color-scheme.content-override': 1}
# What a script of the page says about errors; its functions live as long as the page.
LISTEN = '''(() => { if (window.heardErrors) return;
window.heardErrors = [];
addEventListener("error", event => window.heardErrors.push(String(event.message)));
addEventListener("unhandledrejection", event => window.heardErrors.push(String(event.reason)));
})()'''
EVALUATE = '''const done = arguments[arguments.length - 1], [script] = arguments;
(async () => (0, eval)(script))().then(value => done({value: value === undefined ? null : value}), error => done({error: String(error)}));'''


def find_browser():
    for name in ('firefox-esr', 'firefox'):
        path = shutil.which(name)
        if path:
            return path
    return None


class Page(browser.AnyPage):
    def __init__(self, browser):
        self.browser = browser

    @property
    def errors(self):
        """What scripts did not catch since the page was loaded."""
        return self.run('window.heardErrors || []')

    def open_url(self, url):
        self.browser.send('WebDriver:Navigate', url=url)
        self.run(LISTEN)

    def run(self, script):
        """The value of an expression, or of the last of some statements, awaited."""
        said = self.browser.send('WebDriver:ExecuteAsyncScript', script=EVALUATE, args=[script], newSandbox=False,
                                 scriptTimeout=SECONDS * 1000)['value']
        if 'error' in said:
            raise Failure(said['error'])
        return said['value']

    def settle(self):
        self.run('new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), 150))')

    def act(self, kind, actions, **more):
        self.browser.send('WebDriver:PerformActions', actions=[dict(type=kind, id=kind, actions=actions, **more)])

    def press(self, *keys, modifiers=0):
        held = [KEYS[CONTROL]] if modifiers == CONTROL else []
        actions = [{'type': 'keyDown', 'value': key} for key in held]
        for key in keys:
            actions += [{'type': kind, 'value': KEYS.get(key, key)} for kind in ('keyDown', 'keyUp')]
        self.act('key', actions + [{'type': 'keyUp', 'value': key} for key in held])

    def type(self, text):
        self.press(*text)

    def click(self, element):
        """@element: an expression."""
        x, y = self.middle_of(element)
        self.act('pointer', [{'type': 'pointerMove', 'duration': 0, 'origin': 'viewport', 'x': round(x), 'y': round(y)},
                             {'type': 'pointerDown', 'button': 0}, {'type': 'pointerUp', 'button': 0}], parameters={'pointerType': 'mouse'})

    def resize(self, width, height=800):
        """The page, not the window: its borders are measured."""
        self.browser.send('WebDriver:SetWindowRect', width=width, height=height)
        inner = self.run('[innerWidth, innerHeight]')
        self.browser.send('WebDriver:SetWindowRect', width=2 * width - inner[0], height=2 * height - inner[1])
        self.until('innerWidth === %d' % width)

    def picture(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.browser.send('WebDriver:TakeScreenshot', full=False)['value']))


class Browser:
    def __init__(self, program, folder):
        profile = os.path.join(folder, 'profile')
        os.mkdir(profile)
        with open(os.path.join(profile, 'user.js'), 'w', encoding='utf-8') as file:
            file.writelines('user_pref("%s", %s);\n' % (name, json.dumps(value)) for name, value in PREFERENCES.items())
        environment = dict(os.environ, HOME=folder, XDG_CACHE_HOME=folder, MOZ_HEADLESS_WIDTH=str(SCREEN[0]), MOZ_HEADLESS_HEIGHT=str(SCREEN[1]),
                           MOZ_CRASHREPORTER_DISABLE='1')
        self.process = subprocess.Popen([program, '--headless', '--marionette', '--no-remote', '--profile', profile, 'about:blank'],
                                        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.number, self.rest, self.socket = 0, b'', None
        try:
            self.socket = socket.create_connection(('127.0.0.1', self.port(os.path.join(profile, 'MarionetteActivePort'))), SECONDS)
            self.read()  # who it is
            self.send('WebDriver:NewSession', capabilities={'alwaysMatch': {}})
        except BaseException:
            self.close()
            raise

    def port(self, path):
        """Which one it chose: a file of its profile has it, once it listens."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError, ValueError), open(path, encoding='ascii') as file:
                return int(file.read())
            if self.process.poll() is not None:
                raise Failure('the browser has ended with status %d' % self.process.returncode)
            time.sleep(0.05)
        raise Failure('the browser does not listen')

    def take(self, n):
        while len(self.rest) < n:
            got = self.socket.recv(1 << 16)
            if not got:
                raise Failure('the browser has ended')
            self.rest += got
        taken, self.rest = self.rest[:n], self.rest[n:]
        return taken

    def read(self):
        digits = b''
        while not digits.endswith(b':'):
            digits += self.take(1)
        return json.loads(self.take(int(digits[:-1])))

    def send(self, command, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(b'%d:%s' % (len(message), message))
        _, number, error, result = self.read()
        if number != self.number:
            raise Failure('an answer to another command than %s' % command)
        if error:
            raise Failure('%s: %s' % (command, error['message']))
        return result

    def open_page(self):
        return Page(self)

    def close(self):
        with contextlib.suppress(Failure, OSError, AttributeError):
            self.send('Marionette:Quit', flags=['eForceQuit'])
        if self.socket:
            self.socket.close()
        browser.await_end(self.process)


def opened(program):
    """A page of a new browser."""
    return browser.opened(Browser, program)
