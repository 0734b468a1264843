// Package browser has the tests of the page that need a browser: Chromium, by its DevTools
// protocol. It is a module of its own, so that nobody else has to build that protocol.
//
//	world (made up) --web.Source--> web.Server --HTTP--> page in Chromium <--DevTools-- tests
//
// With EGRET_SCREENSHOTS=DIR the tests leave pictures of the main views there.
package browser
