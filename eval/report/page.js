'use strict';
// Filters, orders and pages the table of questions. Without it all rows are shown.
(function () {
  const size = 50;
  const form = document.getElementById('filter');
  const body = document.getElementById('rows');
  const all = Array.from(body.rows);
  const where = document.getElementById('where');
  const back = document.getElementById('back');
  const on = document.getElementById('on');
  let found = all;
  let page = 0;
  const words = all.map(() => null); // of each row, made when first searched

  function text(i) {
    if (words[i] === null) words[i] = all[i].textContent.toLowerCase();
    return words[i];
  }

  function field(name) {
    return form.elements[name] ? form.elements[name].value : '';
  }

  function filter() {
    const terms = field('words').toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = ['system', 'right', 'lost', 'status'].map((name) => [name, field(name)]).filter((w) => w[1] !== '');
    found = all.filter((row, i) => wanted.every((w) => row.dataset[w[0]] === w[1]) && terms.every((t) => text(i).includes(t)));
    const order = field('order');
    if (order !== '') {
      const sign = order === 'best' ? -1 : 1;
      const score = (row) => { const v = parseFloat(row.dataset.score); return isNaN(v) ? -1 : v; };
      found.sort((a, b) => sign * (score(a) - score(b)));
    }
    page = 0;
    show();
  }

  function show() {
    for (const row of body.querySelectorAll('tr.on')) row.classList.remove('on');
    const rows = found.slice(page * size, (page + 1) * size);
    for (const row of rows) {
      row.classList.add('on');
      body.appendChild(row); // in the order asked for
    }
    const pages = Math.max(1, Math.ceil(found.length / size));
    document.getElementById('shown').textContent = found.length.toLocaleString('en') + ' of ' + all.length.toLocaleString('en') + (all.length === 1 ? ' row' : ' rows');
    where.textContent = 'page ' + (page + 1) + ' of ' + pages;
    back.disabled = page === 0;
    on.disabled = page + 1 >= pages;
    document.getElementById('pages').hidden = pages === 1;
  }

  function turn(by) {
    page += by;
    show();
    document.getElementById('questions').scrollIntoView();
  }

  // A link to a question brings its page up and opens it.
  function follow() {
    let row = null;
    try {
      row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return; // a link that is cut off in the middle of a letter
    }
    if (!row || row.parentNode !== body) return;
    if (!found.includes(row)) {
      form.reset();
      filter();
    }
    page = Math.floor(found.indexOf(row) / size);
    show();
    row.querySelector('details').open = true;
    row.scrollIntoView();
  }

  form.addEventListener('input', filter);
  form.addEventListener('submit', (e) => e.preventDefault());
  back.addEventListener('click', () => turn(-1));
  on.addEventListener('click', () => turn(1));
  window.addEventListener('hashchange', follow);
  form.hidden = all.length === 0;
  document.documentElement.classList.add('paged');
  show();
  follow();
})();
