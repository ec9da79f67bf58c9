#if Cloud
import KeepsakeReplication
import Logging

extension Logger {
  /// Logs that something failed, with its reason in words.
  func failure(_ what: Message, _ error: any Error) {
    self.error(what, metadata: ["error": "\(ErrorReason.text(error))"])
  }
}
#endif
