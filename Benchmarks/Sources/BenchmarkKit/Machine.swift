import Foundation

/// What the figures were measured on, without names and paths of this machine.
public enum Machine {
  public static func line(compiler: String) -> String {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    return "\(processor), \(cores) cores; \(system); \(version(of: compiler)), release build"
  }

  private static var processor: String {
    #if os(Linux)
    let lines = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n") ?? []
    // Without a name in the kernel's list there is just less to tell.
    let name = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last
    return name.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown processor"
    #else
    return "this processor"
    #endif
  }

  private static var system: String {
    let architecture: String
    #if arch(x86_64)
    architecture = "x86-64"
    #elseif arch(arm64)
    architecture = "arm64"
    #else
    architecture = "another architecture"
    #endif
    return "\(ProcessInfo.processInfo.operatingSystemVersionString), \(architecture)"
  }

  /// "Swift 6.3.1" of "Swift version 6.3.1 (swift-6.3.1-RELEASE)".
  private static func version(of compiler: String) -> String {
    let words = compiler.split(separator: " ")
    guard let index = words.firstIndex(of: "version"), index + 1 < words.count else { return compiler }
    return "Swift \(words[index + 1])"
  }
}
