# SPDX-License-Identifier: MIT
"""Chromium by its DevTools protocol, through a pipe: pages are used with real keys and clicks, in any width and theme.

https://chromedevtools.github.io/devtools-protocol/; messages are JSON, ended by NULs, on descriptors 3 and 4.
"""
import base64
import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import browser  # noqa: E402
from browser import SECONDS, Failure, find_browser  # noqa: E402, F401

KEYS = {'Enter': ('Enter', 13, '\r'), 'Escape': ('Escape', 27, ''), 'Tab': ('Tab', 9, ''), 'Home': ('Home', 36, ''), 'End': ('End', 35, ''),
        'ArrowLeft': ('ArrowLeft', 37, ''), 'ArrowUp': ('ArrowUp', 38, ''), 'ArrowRight': ('ArrowRight', 39, ''),
        'ArrowDown': ('ArrowDown', 40, ''), ' ': ('Space', 32, ' ')}
CONTROL = 2


class Page(browser.AnyPage):
    """One page of a browser. Requests that left this machine's files are in `fetched`, errors of scripts in `errors`."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.errors, self.fetched = [], []
        self.is_still = False  # transitions take no time

    def send(self, method, **parameters):
        return self.browser.send(method, parameters, self.session)

    def heard(self, method, parameters):
        if method == 'Runtime.exceptionThrown':
            self.errors.append(parameters['exceptionDetails'].get('exception', {}).get('description', parameters['exceptionDetails']['text']))
        elif method == 'Log.entryAdded' and parameters['entry']['level'] == 'error':
            self.errors.append(parameters['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.fetched.append(parameters['request']['url'])

    def open(self, path, fragment=''):
        """A file; it is loaded anew also where only the fragment is another one."""
        self.send('Page.navigate', url='about:blank')
        self.until('location.href === "about:blank"')
        self.fetched.clear()
        self.send('Page.navigate', url='file://' + os.path.abspath(path) + fragment)
        self.until('document.readyState === "complete" && location.protocol === "file:"')
        self.settle()

    def run(self, script):
        """The value of an expression, awaited."""
        said = self.send('Runtime.evaluate', expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if 'exceptionDetails' in said:
            details = said['exceptionDetails']
            raise Failure(details.get('exception', {}).get('description', details['text']))
        return said['result'].get('value')

    def take_error(self, part):
        """Wait for an error with this text, and forget it: the browser reports a failed request before or after the page has its answer."""
        end = time.monotonic() + SECONDS
        while not any(part in one for one in self.errors):
            if time.monotonic() > end:
                raise Failure('no error with %r: %s' % (part, self.errors))
            self.run('1')
            time.sleep(0.02)
        self.errors.remove(next(one for one in self.errors if part in one))

    def settle(self):
        """Behind all transitions: two frames, and no timer of them."""
        self.run('new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), %d))'
                 % (150 if self.is_still else 700))

    def press(self, *keys, modifiers=0):
        for key in keys:
            code, number, text = KEYS.get(key) or ('Key' + key.upper(), ord(key.upper()), '' if modifiers else key)
            event = dict(key=key, code=code, windowsVirtualKeyCode=number, modifiers=modifiers)
            self.send('Input.dispatchKeyEvent', type='keyDown' if text else 'rawKeyDown', **event, **({'text': text} if text else {}))
            self.send('Input.dispatchKeyEvent', type='keyUp', **event)

    def type(self, text):
        self.send('Input.insertText', text=text)

    def mouse(self, kind, x, y):
        self.send('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='none' if kind == 'mouseMoved' else 'left', clickCount=1)

    def click(self, element):
        """@element: an expression."""
        x, y = self.middle_of(element)
        for kind in ('mouseMoved', 'mousePressed', 'mouseReleased'):
            self.mouse(kind, x, y)

    def resize(self, width, height=800, mobile=False):
        self.send('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def prefer(self, **features):
        """prefer(color_scheme='dark', reduced_motion='reduce'); what is not named is as the machine has it."""
        self.is_still = features.get('reduced_motion') == 'reduce'
        self.send('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-' + name.replace('_', '-'), 'value': value} for name, value in features.items()])

    def picture(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.send('Page.captureScreenshot', format='png')['data']))


# Runs a command with two descriptors as its 3 and 4; shells know no numbers of two digits.
WITH_PIPES = 'import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])'


def high_pipe():
    """Both ends above 3 and 4, which become these: none may be in another's way."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return moved


class Browser:
    def __init__(self, program, folder):
        command_in, commands = high_pipe()
        answers, answers_out = high_pipe()
        command = [program, '--headless', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
                   '--disable-component-update', '--disable-sync', '--hide-scrollbars', '--remote-debugging-pipe',
                   '--user-data-dir=' + os.path.join(folder, 'profile'), 'about:blank']
        if os.geteuid() == 0:
            command.insert(1, '--no-sandbox')  # Chromium refuses to run as root otherwise
        self.process = subprocess.Popen([sys.executable, '-c', WITH_PIPES, str(command_in), str(answers_out), *command],
                                        pass_fds=(command_in, answers_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(command_in)
        os.close(answers_out)
        self.commands, self.answers, self.rest, self.number = commands, answers, b'', 0
        self.page = None

    def read(self):
        end = time.monotonic() + SECONDS
        while b'\0' not in self.rest:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise Failure('the browser does not answer')
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise Failure('the browser has ended')
            self.rest += got
        message, _, self.rest = self.rest.partition(b'\0')
        return json.loads(message)

    def send(self, method, parameters, session=None):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': parameters}
        if session:
            message['sessionId'] = session
        rest = json.dumps(message).encode() + b'\0'
        while rest:
            rest = rest[os.write(self.commands, rest):]
        while True:
            answer = self.read()
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise Failure('%s: %s' % (method, answer['error']['message']))
                return answer['result']
            if self.page and answer.get('sessionId') == self.page.session:
                self.page.heard(answer['method'], answer['params'])

    def open_page(self):
        target = self.send('Target.createTarget', {'url': 'about:blank'})['targetId']
        session = self.send('Target.attachToTarget', {'targetId': target, 'flatten': True})['sessionId']
        self.page = Page(self, session)
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.page.send(domain + '.enable')
        return self.page

    def close(self):
        with contextlib.suppress(Failure, OSError):
            self.send('Browser.close', {})
        for descriptor in (self.commands, self.answers):
            os.close(descriptor)
        browser.await_end(self.process)


def opened(program):
    """A page of a new browser."""
    return browser.opened(Browser, program)
