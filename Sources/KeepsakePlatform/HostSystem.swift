/// The operating system that this program was built for. What depends on it and isn't a call of the system looks at
/// this value, so that each system's way is compiled on all of them.
package enum HostSystem: String, CaseIterable, Sendable {
  case linux, android, windows, macOS, iOS, tvOS, watchOS, visionOS

  package static var current: HostSystem {
    #if os(Windows)
    .windows
    #elseif os(Android)
    .android
    #elseif os(macOS)
    .macOS
    #elseif os(iOS)
    .iOS
    #elseif os(tvOS)
    .tvOS
    #elseif os(watchOS)
    .watchOS
    #elseif os(visionOS)
    .visionOS
    #else
    .linux
    #endif
  }

  package var isApple: Bool {
    switch self {
    case .macOS, .iOS, .tvOS, .watchOS, .visionOS: true
    case .linux, .android, .windows: false
    }
  }

  /// What a player calls a device with this system, for one that has no name.
  package var deviceName: String {
    switch self {
    case .linux: "Linux"
    case .android: "Android"
    case .windows: "Windows"
    case .macOS: "Mac"
    case .iOS: "iPhone or iPad"
    case .tvOS: "Apple TV"
    case .watchOS: "Apple Watch"
    case .visionOS: "Apple Vision"
    }
  }
}
