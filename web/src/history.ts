// Undo and redo over lists of points. Lists are never changed in place, so keeping one costs a reference.

import type { Point } from "./store";

const MOST = 200;

export class History {
  private past: (readonly Point[])[] = [];
  private future: (readonly Point[])[] = [];
  private group = "";

  /** Remember `before` as what undo leads back to; changes of one `group` in a row count as one. */
  push(before: readonly Point[], group = ""): void {
    this.future = [];
    if (group !== "" && group === this.group) return;
    this.group = group;
    this.past.push(before);
    if (this.past.length > MOST) this.past.shift();
  }

  /** End a group: the next change is one of its own. */
  settle(): void {
    this.group = "";
  }

  undo(now: readonly Point[]): readonly Point[] | null {
    return this.step(this.past, this.future, now);
  }

  redo(now: readonly Point[]): readonly Point[] | null {
    return this.step(this.future, this.past, now);
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  clear(): void {
    this.past = [];
    this.future = [];
    this.group = "";
  }

  private step(
    from: (readonly Point[])[], to: (readonly Point[])[], now: readonly Point[],
  ): readonly Point[] | null {
    const found = from.pop();
    if (found === undefined) return null;
    to.push(now);
    this.group = "";
    return found;
  }
}
