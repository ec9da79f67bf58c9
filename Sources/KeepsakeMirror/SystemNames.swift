import KeepsakePlatform

/// Which names the files of a system can have.
///
/// What one system has may be impossible on another: a file is kept under its name wherever that was made, and written
/// only where it is possible. That two names are the same on a disk, because only the case of letters or their Unicode
/// spelling differs, depends on the disk and not on the system: a mirror finds it out by looking (`FolderMirror`).
package enum SystemNames: Sendable {
  /// Every name that a save's path may have: Linux, and Apple's systems.
  case any
  case windows

  /// Those of the system that this program runs on.
  package static var current: SystemNames { HostSystem.current == .windows ? .windows : .any }

  /// Whether a file of the system can have this path.
  func allows(_ path: SavePath) -> Bool {
    switch self {
    case .any: true
    case .windows: path.components.allSatisfy(Self.isPossibleOnWindows)
    }
  }

  /// A backslash would lead into another folder, and a colon to another stream of a file.
  private static let refusedOnWindows = Set("<>:\"|?*\\".unicodeScalars)

  private static func isPossibleOnWindows(_ name: String) -> Bool {
    let scalars = name.unicodeScalars
    // Windows removes a dot or a space at the end, and so opens another file.
    guard let last = scalars.last, last != ".", last != " ", !scalars.contains(where: refusedOnWindows.contains) else {
      return false
    }
    // Devices, whatever follows the first dot.
    let stem = String(String.UnicodeScalarView(scalars.prefix { $0 != "." })).uppercased()
    return !isDevice(stem.prefix { $0 != " " })
  }

  private static func isDevice(_ stem: Substring) -> Bool {
    switch stem {
    case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$": return true
    default:
      guard stem.hasPrefix("COM") || stem.hasPrefix("LPT"), stem.unicodeScalars.count == 4, let digit = stem.last else {
        return false
      }
      return "0123456789¹²³".contains(digit)
    }
  }
}
