// Package environment runs the controller as users do: the real binary, on a
// real cluster, with its own RBAC and no more, and with a registry to pull from.
// End-to-end tests and the demo are built on it.
package environment
