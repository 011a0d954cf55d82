// Package failure gives the errors of activities their kinds, and decides which of them a retry cannot fix.
//
// Glossary. To *classify* an error is to give it the kind that the errors it wraps stand for.
package failure
