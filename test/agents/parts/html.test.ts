import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { textOfHtml } from "../../../agents/parts/html.ts";

test("a page's blocks are paragraphs, and what nobody sees is left out", () => {
  const page = `<!DOCTYPE html><html><head><title>Leases</title><style>p { color: red }</style>
    <script>if (1 < 2) document.write("<p>no</p>")</script></head>
    <body><!-- <p>no</p> --><h1>On   <em>leases</em></h1><p>One&nbsp;minute,
    a &lt;third&gt; of it<br>and &#8220;more&#x201d;.</p></body></html>`;
  assert.equal(textOfHtml(page), "Leases\n\nOn leases\n\nOne minute, a <third> of it\nand “more”.");
});

test("what is no tag is text", () => {
  assert.equal(textOfHtml("1 < 2 and 3 <4"), "1 < 2 and 3 <4");
  assert.equal(textOfHtml("&unknown; &#0; &#x110000;"), "&unknown; &#0; &#x110000;");
  assert.equal(textOfHtml("kept <script>left out"), "kept");
  assert.equal(textOfHtml(""), "");
});

test("any text can be read", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => typeof textOfHtml(text) === "string"));
});

test("pages made to be slow are read at once", () => {
  // Each of these takes minutes where the work grows with the square of the length.
  for (const piece of ["<script>", "<!--", "<a ", "<p> ", " ", "&#", "<br> "])
    textOfHtml(piece.repeat(1_000_000 / piece.length));
});
