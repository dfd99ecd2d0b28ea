// Package browser has the tests of the page (docs/ui.md) in a real browser, a headless Chromium, with
// a real agent and simulated clusters. They are skipped where there is no Chromium, or where npm has not
// put axe-core into ui/node_modules: as root, test/browser/install does both on Debian, and in CI
// PROGRAMS_REQUIRED=1 makes that an error. With -pictures they write the pictures in docs/ui.
package browser
