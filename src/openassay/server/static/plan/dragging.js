// Sub-questions are dragged by their grip. The buttons beside them do the same for keyboards and fingers.
import { useRef, useState } from "../core/html.js";
import { dropped } from "./edits.js";

export function useDragging(editor) {
  const held = useRef(null);
  const [over, setOver] = useState(null); // {id, after}: where it would come to stand
  const end = () => {
    held.current = null;
    setOver(null);
  };
  const handlers = {
    onDragStart(event) {
      const row = event.target.closest("[data-question]");
      if (!row) return;
      held.current = row.dataset.question;
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", held.current);
      event.dataTransfer.setDragImage(row, 10, 10);
    },
    onDragOver(event) {
      const row = event.target.closest("[data-question]");
      if (!held.current || !row) return;
      event.preventDefault();
      const { top, height } = row.getBoundingClientRect();
      const next = { id: row.dataset.question, after: event.clientY > top + height / 2 };
      if (next.id !== over?.id || next.after !== over?.after) setOver(next);
    },
    onDrop(event) {
      event.preventDefault();
      const [id, target] = [held.current, over];
      end();
      if (id && target) editor.change(dropped(editor.plan, id, target.id, target.after), id, "Moved.");
    },
    onDragEnd: end,
  };
  return { over, handlers };
}
