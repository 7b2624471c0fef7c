// What the page has to say, where no dialog is open.
import { html } from "../core/html.js";
import { Notices as Said } from "../core/parts.js";

export const Notices = () => html`<${Said} role="status" />`;
