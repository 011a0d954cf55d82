// Package setup finds a Python that can run the trainer engine, or makes one. It says which versions of packages the
// engine works with.
//
// Glossary. A *candidate* is an interpreter that may be able to run the engine. The *own environment* is a virtual
// environment below the project's state folder. It holds only the engine's packages, in versions that are pinned by
// digest. uv makes it, and it is replaced as a whole.
package setup
