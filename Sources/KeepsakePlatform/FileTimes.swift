extension stat {
  /// When the file's content was last modified; a program can set it.
  package var modified: timespec {
    #if canImport(Darwin)
    st_mtimespec
    #else
    st_mtim
    #endif
  }

  /// When the file's entry was last changed; no program can set it.
  package var changed: timespec {
    #if canImport(Darwin)
    st_ctimespec
    #else
    st_ctim
    #endif
  }
}

extension timespec {
  /// In nanoseconds since 1970. Wraps around for times some centuries away: for comparing, and not for showing.
  package var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}
