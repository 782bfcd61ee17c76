
"use strict"
for (const box of document.querySelectorAll(".sliders")) {
  const grid = JSON.parse(document.getElementById(box.dataset.grid).textContent)
  const table = document.getElementById(box.dataset.table)
  const said = box.querySelector(".said")
  const inputs = [...box.querySelectorAll("input")]
  const lists = [grid.rates, grid.bursts, grid.caps]
  const group = n => n.toLocaleString("en")
  const deep = Math.max(1, grid.caps.length)
  const cell = (r, b, c) => grid.cells[(r * grid.bursts.length + b) * deep + c]
  const tell = () => {
    const at = inputs.map(i => Number(i.value))
    const [r, b, c = 0] = at
    inputs.forEach((input, i) => {
      const text = group(lists[i][at[i]])
      input.setAttribute("aria-valuetext", text)
      input.parentElement.querySelector("output").textContent = text
    })
    const x = cell(r, b, c)
    said.textContent = `At ${group(grid.rates[r])} a minute, burst ${group(grid.bursts[b])}` +
      (grid.caps.length ? `, ${group(grid.caps[c])} at once` : "") +
      `: ${x.n} of ${grid.users} ${grid.noun}s meet a 429 (${x.share}, 95 % interval ${x.interval}). ` +
      `${x.ok} of them are OK (${x.ok_interval}), ` + (x.goal ? "which meets the goal. " : "which misses the goal. ") +
      `${x.rejected} of the requests are rejected: ${x.rate} for the rate, ${x.concurrency} for concurrency.`
    table.querySelectorAll("tbody tr").forEach((row, i) => row.querySelectorAll("td").forEach((td, j) => {
      const y = cell(i, j, c)
      const edge = (test, name) => td.classList.toggle(name, test)
      for (let h = 0; h < 7; h++) edge(h === y.shade, "h" + h)
      edge(j > 0 && cell(i, j - 1, c).goal !== y.goal, "gl")
      edge(i > 0 && cell(i - 1, j, c).goal !== y.goal, "gt")
      edge(i === r && j === b, "picked")
      td.querySelector("b").textContent = (y.goal ? "✓ " : "") + y.share
      td.querySelector("small").textContent = y.rejected
      td.title = `${group(grid.rates[i])} a minute, burst ${group(grid.bursts[j])}: ${y.n} of ${grid.users} ${grid.noun}s affected, ${y.rejected} of the requests rejected`
    }))
    const cap = table.querySelector("caption b")
    if (cap) cap.textContent = group(grid.caps[c])
  }
  inputs.forEach(i => i.addEventListener("input", tell))
  box.hidden = false
  tell()
}
