// Package hook knows the hooks of Helm charts: objects that are created before or after an
// operation, one at a time, and that end before it goes on. It reads what annotations say, puts
// hooks in their order, and tells from an object how its run stands. It makes no request.
package hook
