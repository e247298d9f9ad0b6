// Package excerpt makes short texts of long ones and of lists, for messages that
// have little room: in one line, bounded in bytes, and never silent about what was
// left out.
//
//	items, limit -> the first of them, and how many more there are
//	text, limit  -> its beginning
//	name         -> the same, quoted
//	error        -> its text, without what is volatile or secret
package excerpt
