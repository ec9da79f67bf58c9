/// When a file was changed, from what the system says about it.
///
/// No extension of `stat`: the compiler may take several modules for the one that defines it, and finds an extension
/// only if it takes the same one everywhere.
package struct FileTime: Hashable, Sendable {
  /// Since 1970.
  package let seconds: Int64
  /// Of that second, in nanoseconds.
  package let fraction: Int64

  /// Since 1970. Wraps around for times some centuries away: for comparing, and not for showing.
  package var nanoseconds: Int64 { seconds &* 1_000_000_000 &+ fraction }

  #if os(Windows)
  /// - Parameter windowsTime: In units of 100 ns since 1601.
  init(windowsTime: Int64) {
    let second: Int64 = 10_000_000
    let (quotient, rest) = windowsTime.quotientAndRemainder(dividingBy: second)
    let isBefore = rest < 0
    seconds = quotient - 11_644_473_600 - (isBefore ? 1 : 0)
    fraction = (isBefore ? rest + second : rest) * 100
  }
  #else
  private init(_ time: timespec) { (seconds, fraction) = (Int64(time.tv_sec), Int64(time.tv_nsec)) }

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
  #endif
}
