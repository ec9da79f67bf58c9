#if Cloud
import KeepsakePlatform

/// The process's file descriptors.
enum Descriptors {
  /// Raises the soft limit of open files to the hard one, as far as the system allows it.
  ///
  /// - Returns: How many files may be open now.
  static func raiseLimit() -> Int {
    ProcessResources.raiseDescriptorLimit(upTo: 1 << 20) ?? 1_024
  }

  /// Returns how many connections a process with so many descriptors may have open: each may need a second one, for a
  /// file with its body or its response, and the rest of the server needs some, too.
  static func connections(for descriptors: Int) -> Int {
    max(8, min(ServerLimits.connections, (descriptors - ServerLimits.reservedDescriptors) / 2))
  }
}
#endif
