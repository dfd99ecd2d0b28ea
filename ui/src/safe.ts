// What other clusters choose, such as names and messages, is shown as text: characters that cannot be
// seen, or that turn the direction of others, are shown by their numbers as the command line does, and
// a text has an end. No view can forget it: every text on its way to the document passes here.
import { options, type VNode } from "preact";

const longest = 2000; // characters of one text
// Controls, formats (bidirectional ones, zero-width ones), private use, what is no character, and separators of lines.
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const suspect = /[^\x20-\x7e]/;

/** The text as it is shown. What is safe already stays as it is. */
export function safe(text: string): string {
  let shown = text.slice(0, longest);
  if (suspect.test(shown)) shown = shown.replace(unseen, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
  if (text.length <= longest && shown.length <= longest) return shown;
  const end = `… (${text.length} characters in all)`;
  return shown.slice(0, longest - end.length).replace(/[\ud800-\udbff]$/, "") + end; // no half of a character
}

const shown = ["title", "aria-label", "alt", "placeholder", "label"];

function clean(child: unknown): unknown {
  if (typeof child === "string") return safe(child);
  return Array.isArray(child) ? child.map(clean) : child;
}

/** Makes every text of the page safe, before anything is shown. */
export function guardTexts(): void {
  const before = options.vnode;
  options.vnode = (v: VNode<any>) => {
    const props = v.props as any;
    if (typeof props === "string") {
      (v as any).props = safe(props);
    } else if (props) {
      if (props.children !== undefined) props.children = clean(props.children);
      if (typeof v.type === "string") {
        for (const name of shown) if (typeof props[name] === "string") props[name] = safe(props[name]);
      }
    }
    before?.(v);
  };
}
