// Sorts a table by a column when its heading is clicked; numbers by their value, all else by its text.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const compared = (a, b) => {
        const numbers = [Number(a), Number(b)];
        return a !== "" && b !== "" && numbers.every(Number.isFinite) ? numbers[0] - numbers[1] : a.localeCompare(b);
      };
      const rows = [...table.tBodies[0].rows].sort((a, b) => compared(value(a), value(b)) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}
