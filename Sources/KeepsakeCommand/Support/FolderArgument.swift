#if Cloud
import Foundation
import KeepsakePlatform
/// A folder that a command reads and doesn't create.
enum FolderArgument {
  /// Returns the path of what is in a folder, as the folder was named.
  static func path(of name: String, in folder: String) -> String {
    folder.hasSuffix("/") ? folder + name : folder + "/" + name
  }

  /// - Throws: `CommandFailure` if there is none, or if the system doesn't let the command look into it. What reads
  ///   single files of the folder couldn't tell that from a folder without them.
  static func url(_ path: String) throws -> URL {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw CommandFailure.nothing(at: path)
    }
    guard isFolder.boolValue else { throw CommandFailure(.data, "\(path) is a file", next: "name a folder") }
    guard access(path, R_OK | X_OK) == 0 else {
      let number = errno
      throw CommandFailure(system: number, "\(path) can't be looked at: \(String(cString: strerror(number)))")
    }
    return URL(fileURLWithPath: path, isDirectory: true)
  }
}
#endif
