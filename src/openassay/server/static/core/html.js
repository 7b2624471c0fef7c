// Markup as tagged templates, which need no build step. Text in them is always text: no page of others, no report and no
// name can become markup.
import { h } from "preact";
import htm from "htm";

export { Component, Fragment, render } from "preact";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";

export const html = htm.bind(h);
