/// When a file was changed, from what the system says about it.
///
/// No extension of `stat`: the compiler may take several modules for the one that defines it, and finds an extension
/// only if it takes the same one everywhere.
package struct FileTime: Sendable {
  /// Since 1970.
  package let seconds: Int64
  /// Of that second, in nanoseconds.
  package let fraction: Int64

  private init(_ time: timespec) { (seconds, fraction) = (Int64(time.tv_sec), Int64(time.tv_nsec)) }

  /// Since 1970. Wraps around for times some centuries away: for comparing, and not for showing.
  package var nanoseconds: Int64 { seconds &* 1_000_000_000 &+ fraction }

  /// When the content was last modified; a program can set it.
  package static func modified(_ status: borrowing stat) -> FileTime {
    #if canImport(Darwin)
    FileTime(status.st_mtimespec)
    #else
    FileTime(status.st_mtim)
    #endif
  }

  /// When the entry was last changed; no program can set it.
  package static func changed(_ status: borrowing stat) -> FileTime {
    #if canImport(Darwin)
    FileTime(status.st_ctimespec)
    #else
    FileTime(status.st_ctim)
    #endif
  }
}
