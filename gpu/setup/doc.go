// Package setup finds a Python that can run the trainer engine, or makes one.
//
// Glossary. A *candidate* is an interpreter that might do. The *own environment* is a virtual environment below
// the project's state folder that holds the engine's packages and nothing else, in versions that are pinned by
// digest; it is made by uv and replaced as a whole.
package setup
