// From a picture to the text. Where there is no room for both, the answer takes the place of the picture.
import { turn } from "../core/place.js";
import { showStatement } from "../core/store.js";

export function jump(statement, claim) {
  if (matchMedia("(max-width: 900px)").matches) turn({ panel: "answer" }, { keep: true });
  showStatement(statement, claim);
}
