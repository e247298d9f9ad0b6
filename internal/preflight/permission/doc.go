// Package permission says which rights a ServiceAccount needs to install, repair
// and upgrade a set of objects, and which of them it lacks.
//
//	objects             -> [Needs]         pure  [NeedsOf]
//	Needs, [Held]       -> what is missing pure  [Missing]
//	old Needs, new      -> what is more    pure  [Delta]
//	old objects, new    -> what an operator may do that it could not, pure, [Growth]
//	Needs               -> RBAC to apply   pure  [Grants]
//	a ServiceAccount    -> Held            I/O   [Review], as the ServiceAccount
//	all of it in one go                    I/O   [Check]
//
// A right is needed if a request for the objects would be refused without it:
// get, create and patch for each object, delete for those that a revision
// drops. Nothing is needed to uninstall, which the garbage collector does. Who
// writes roles and bindings must hold what these grant, or may escalate or bind.
// To list and to watch is advice: without, changes are noticed late.
//
// The package changes nothing on the cluster. What it finds is advice; the API
// server is the judge.
package permission
