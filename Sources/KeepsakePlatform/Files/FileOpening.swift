/// For what a file or a folder is opened. No program that this process starts gets what it opened.
package enum FileOpening: Sendable {
  /// To read what is there, a folder too. Waits for the writer of a pipe.
  case reading
  /// The same, without waiting for the writer of a pipe.
  case readingAtOnce
  /// The same, but fails with `ELOOP` for a symbolic link.
  case readingPlain
  /// To look into a folder; fails with `ENOTDIR` for anything else.
  case folder
  /// The same, but fails with `ELOOP` or `ENOTDIR` for a symbolic link.
  case plainFolder
  /// To wait until what was written to a file is on the disk.
  case syncing
  /// To write a new file; fails with `EEXIST` if the name is taken.
  case creating
  /// To write a file, which is created or emptied.
  case emptying
  /// To lock a file, which is created if there is none.
  case locking
}
