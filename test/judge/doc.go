// Package judge holds what others make of a status against what the status says itself:
// Argo CD by our health checks, Flux and everybody else by kstatus, kubectl wait by Ready.
//
// [Status] decides by a table, and is pure. Suites that run the controller have every status
// that is written judged by it: test/environment sees to that.
package judge
