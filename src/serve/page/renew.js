// SPDX-License-Identifier: MIT
// renew.js - new contents for a part of the page that is refreshed while somebody uses it.

let isPressed = false; // a pointer
const waiting = new Map(); // part -> its next contents

const keyOf = (one) => one.getAttribute("href") || one.getAttribute("aria-label");

function put(host, children) {
	const focused = host.contains(document.activeElement) ? keyOf(document.activeElement) : null;

	host.replaceChildren(...children);
	if (focused)
		[...host.querySelectorAll("a, [tabindex]")].find((one) => keyOf(one) === focused)?.focus({ preventScroll: true });
}

function release() {
	isPressed = false;
	waiting.forEach((children, host) => put(host, children));
	waiting.clear();
}

const releaseLater = () => setTimeout(release); // the click comes first

addEventListener("pointerdown", (event) => { isPressed = event.button === 0; }, true); // another one opens a menu, which may keep its release
for (const name of ["pointerup", "pointercancel", "dragend"])
	addEventListener(name, releaseLater, true);
addEventListener("blur", releaseLater); // of the window: an element that loses the focus by the press is no release

/*
 * renew - give a part its new contents, and the focus to the same link or region as before.
 * While a pointer is pressed, the old contents stay: a click needs the element that it began on.
 */
export function renew(host, ...children) {
	if (isPressed)
		waiting.set(host, children);
	else
		put(host, children);
}
