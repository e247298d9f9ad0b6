// Package turn has large jobs take turns, so that they neither take the memory of the
// process together nor keep small ones waiting.
//
// A job does not know that it is large before it has looked at what there is to do. It
// takes a place then, or ends and begins again when one is kept for it: it waits without
// a worker. Places go to one author after the other, whatever each of them asks for.
package turn
