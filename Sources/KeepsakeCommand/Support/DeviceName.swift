#if Cloud
import Foundation

/// The name under which other devices list this one.
enum DeviceName {
  static var current: String { ProcessInfo.processInfo.hostName }
}
#endif
