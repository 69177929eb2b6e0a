// SPDX-License-Identifier: MIT
// views.js - all views, in the order of their links.
import "./overview.js";
import "./timeline.js";
import "./flame.js";
import "./tables.js";
import "./backtrace.js";
import "./compare.js";
import "./console.js";
