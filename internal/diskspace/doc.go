// Package diskspace shares the bytes on a disk among those who keep something there:
// what each holds -> whether it may take more.
//
// It counts, and neither knows files nor looks at a disk. A share is set aside for each
// of the first few, which nobody can keep from them; what is beyond the shares goes to
// who comes first.
package diskspace
