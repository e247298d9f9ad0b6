// Package atomicfile replaces files so that who reads one, now or after a crash, finds
// the old content or the new, and never a part of it. Files are for the owner of the
// process only.
//
//	folder, content -> a file with a new name, which is on disk
//	that file, path -> the file at path, in one step
package atomicfile
