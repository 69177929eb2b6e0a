// SPDX-License-Identifier: MIT
// frame.js - a picture of the server in a frame. It is a document of its own without rights: it has scripts, and no way to this page or
// to the network. A new picture is loaded behind the old one, which stays until the new one is there.
import { element } from "../../export/html/dom.js";
import { ask, url } from "./api.js";

/* The status of the answer that a frame has loaded; 0: the browser does not say, and the server is asked once more. */
function statusOf(address) {
	const entries = performance.getEntriesByName(new URL(address, location.href).href);

	return entries.length ? entries[entries.length - 1].responseStatus || 0 : 0;
}

/* @title: of the frame. @say: say(sentence, isError). */
export function makeFrame(title, say) {
	const host = element("div", { className: "frame", hidden: true });
	let turn = 0;

	/* Resolves to whether the picture is there. */
	function load(path, parameters) {
		const mine = ++turn;
		const address = url(path, parameters);
		const frame = element("iframe", { title, className: "loading", attributes: { sandbox: "allow-scripts" } });

		host.hidden = false;
		[...host.querySelectorAll(".loading")].forEach((one) => one.remove());
		say(host.firstChild ? "Loading." : "The picture is being made.");
		performance.clearResourceTimings();
		return new Promise((resolve) => {
			frame.addEventListener("load", async () => {
				if (mine !== turn)
					return resolve(false);
				const failure = statusOf(address) === 200 ? null : await ask(path, parameters).then(() => null, (error) => error);

				if (mine !== turn)
					return resolve(false);
				if (failure) {
					frame.remove();
					host.hidden = !host.firstChild;
					say(failure.message, true);
					return resolve(false);
				}
				host.replaceChildren(...[...host.children].filter((one) => one === frame));
				frame.classList.remove("loading");
				say("");
				return resolve(true);
			}, { once: true });
			frame.src = address;
			host.append(frame);
		});
	}

	function clear() {
		turn++;
		host.replaceChildren();
		host.hidden = true;
		say("");
	}

	return { host, load, clear };
}
