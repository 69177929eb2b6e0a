// SPDX-License-Identifier: MIT
// plot.js - no charts, in builds without the page's libraries: the numbers are in tables.

export const spark = () => "";
export const lines = () => "";
